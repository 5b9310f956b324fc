// Generated from the host's OpenAPI document by `make types`; do not edit.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Aggregate: {
            count: number;
            histogram: components["schemas"]["Bin"][];
            max: number | null;
            mean: number | null;
            min: number | null;
            mode_category: string | null;
            name: string;
            nan_count: number;
            percentiles: {
                [key: string]: number;
            } | null;
            rubric_distribution: components["schemas"]["LevelCount"][] | null;
            std_dev: number | null;
            std_error: number | null;
            sum: number | null;
            variance: number | null;
        };
        Agreement: {
            accuracy: number | null;
            accuracy_interval: [
                number,
                number
            ] | null;
            classes: components["schemas"]["ClassAgreement"][];
            confusion: components["schemas"]["AgreementCell"][];
            evaluator: string;
            failed: number;
            incomparable: number;
            kappa: number | null;
            kappa_interval: [
                number,
                number
            ] | null;
            label: string;
            left_out: string;
            note: string | null;
            rows: number;
            skipped: number;
            unlabelled: number;
            waiting: number;
            weighted_kappa: number | null;
        };
        AgreementCell: {
            first: number[];
            human: string;
            judged: string;
            rows: number;
        };
        AlertChangeIn: {
            acknowledged?: boolean | null;
            paused?: boolean | null;
        };
        AlertIn: {
            above?: number | null;
            below?: number | null;
            evaluator?: string | null;
            job?: string | null;
            live?: string | null;
            metric: components["schemas"]["Metric"];
            min_rows?: number;
            name: string;
            schedule?: string | null;
            secret?: string | null;
            url?: string | null;
            window_minutes?: number;
        };
        AlertReport: {
            acknowledged: boolean;
            checked_at: string | null;
            /** Format: date-time */
            created_at: string;
            deliveries: components["schemas"]["DeliveryReport"][];
            firing: boolean;
            name: string;
            paused: boolean;
            rule: components["schemas"]["AlertRule"];
            unsent: number;
            value: number | null;
        };
        AlertRule: {
            above: number | null;
            below: number | null;
            evaluator: string | null;
            job: string | null;
            live: string | null;
            metric: components["schemas"]["Metric"];
            min_rows: number;
            schedule: string | null;
            secret: string | null;
            url: string | null;
            window_minutes: number;
        };
        BadLine: {
            line: number;
            message: string;
        };
        Batch: {
            results: components["schemas"]["EvaluationResult"][];
            summary: components["schemas"]["BatchSummary"];
            together: components["schemas"]["EvaluationResult"] | null;
        };
        BatchIn: {
            evaluator: components["schemas"]["EvaluatorIn"] | string;
            isolation?: components["schemas"]["Isolation"];
            outputs?: "none" | null;
            replay?: components["schemas"]["Replay"];
            rows: components["schemas"]["RowIn"][];
        };
        BatchSummary: {
            doubt: string | null;
            errors: {
                [key: string]: number;
            };
            failed: number;
            judged: number;
            mean: number | null;
            mean_rows: number;
            pass_rate: number | null;
            rows: number;
            rows_per_s: number;
            scored: number;
            skipped: number;
            warnings: components["schemas"]["WarningCount"][];
        };
        Bin: {
            count: number;
            lower_bound: number;
            upper_bound: number;
        };
        BudgetIn: {
            cost?: number | null;
            requests?: number | null;
            tokens?: number | null;
        };
        /** @enum {string} */
        BuildStatus: "building" | "ready" | "failed";
        CaseIn: {
            case?: string | null;
            criteria?: unknown;
            expect: {
                [key: string]: unknown;
            } | string | number;
            inputs?: {
                [key: string]: unknown;
            };
            messages?: {
                [key: string]: unknown;
            }[] | null;
            outputs?: unknown;
            trace?: {
                [key: string]: unknown;
            } | null;
            variables?: {
                [key: string]: unknown;
            } | null;
        };
        CaseProblem: {
            case: string;
            problem: string;
        };
        Change: {
            after: number | null;
            before: number | null;
            row: number;
        };
        Changed: {
            after: string;
            before: string;
            what: string;
        };
        ChangePage: {
            changes: components["schemas"]["Change"][];
            next: number | null;
        };
        CheckIn: {
            cases?: components["schemas"]["CaseIn"][] | null;
            evaluator: components["schemas"]["EvaluatorIn"] | string;
        };
        CheckReport: {
            classes: components["schemas"]["EvaluatorClass"][];
            contract: string | null;
            contract_source: string | null;
            environment: components["schemas"]["EnvironmentInfo"];
            failing_cases: components["schemas"]["CaseProblem"][];
            logs: components["schemas"]["Logs"];
            missing_imports: components["schemas"]["MissingImport"][];
            models: string[];
            network: string[];
            not_loaded: string[];
            notes: components["schemas"]["Note"][];
            ok: boolean;
            parameters: string[];
            problems: components["schemas"]["EvaluationError"][];
            reads: components["schemas"]["Reads"];
            reason: string | null;
            rewritten: string | null;
            secrets: {
                [key: string]: string;
            };
        };
        ClassAgreement: {
            human: number;
            judged: number;
            name: string;
            precision: number | null;
            precision_interval: [
                number,
                number
            ] | null;
            recall: number | null;
            recall_interval: [
                number,
                number
            ] | null;
        };
        CodeSecretIn: {
            secret: string;
        };
        ColumnFacts: {
            distinct: number | null;
            empty: number;
            kinds: {
                [key: string]: number;
            };
            max: number | null;
            max_length: number | null;
            mean: number | null;
            min: number | null;
            min_length: number | null;
            missing: number;
            name: string;
            present: number;
            top: components["schemas"]["TopValue"][];
        };
        ColumnStatistics: {
            doubt: string | null;
            evaluator: string;
            groups: components["schemas"]["GroupStatistics"][];
            others: components["schemas"]["GroupStatistics"] | null;
        };
        ComparedColumn: {
            after: string;
            before: string;
            doubt: string | null;
            groups: components["schemas"]["ComparedGroup"][];
            note: string | null;
            others: components["schemas"]["ComparedGroup"] | null;
        };
        ComparedGroup: {
            difference: components["schemas"]["Difference"];
            rows: number;
            value: unknown;
        };
        Comparison: {
            after: string;
            before: string;
            changed: components["schemas"]["Changed"][];
            doubt: string | null;
            gained: number;
            improved: number;
            improvements: components["schemas"]["Change"][];
            judged: number;
            lost: number;
            metrics: components["schemas"]["Difference"][];
            only_after: number;
            only_before: number;
            pass_difference: components["schemas"]["Difference"] | null;
            pass_rate_after: number | null;
            pass_rate_before: number | null;
            passes_gained: number;
            passes_lost: number;
            passes_lost_rows: number[];
            regressed: number;
            regressions: components["schemas"]["Change"][];
            unscored: number;
            warnings_after: components["schemas"]["WarningCount"][];
            warnings_before: components["schemas"]["WarningCount"][];
        };
        /** @enum {string} */
        Contract: "auto" | "evaluate" | "evaluate-v1" | "main" | "function" | "script" | "judge" | "agentcore" | "braintrust" | "coze" | "deepeval" | "galileo" | "honeyhive" | "inspect" | "langfuse" | "langsmith" | "maxim" | "mlflow" | "nemo" | "openai-grader" | "opik" | "patronus" | "phoenix" | "promptfoo" | "ragas" | "rewards" | "uipath" | "vertex" | "weave";
        DataFile: {
            /** Format: date-time */
            created_at: string;
            digest: string;
            size_bytes: number;
        };
        DatasetReport: {
            bad_row_count: number;
            bad_rows: components["schemas"]["BadLine"][];
            columns: string[];
            /** Format: date-time */
            created_at: string;
            digest: string;
            expected_column: string | null;
            format: string;
            id: string;
            name: string;
            notes: string[];
            outputs_column: string | null;
            rows: number;
            size_bytes: number;
            version: number;
        };
        DayUsage: {
            cost: number;
            day: string;
            input_tokens: number;
            model: string;
            output_tokens: number;
            replayed: number;
            requests: number;
            unpriced: number;
        };
        DeliveryReport: {
            attempts: number;
            /** Format: date-time */
            created_at: string;
            error: string | null;
            id: string;
            job: string | null;
            status: string;
            text: string;
            type: string;
        };
        Difference: {
            after: number | null;
            before: number | null;
            better: number;
            difference: number | null;
            interval: [
                number,
                number
            ] | null;
            metric: string;
            n: number;
            note: string | null;
            significant: boolean;
            worse: number;
        };
        EditIn: {
            add?: {
                [key: string]: unknown;
            }[];
            add_from?: components["schemas"]["JobRowsIn"] | components["schemas"]["TraceRowsIn"] | null;
            create?: boolean;
            remove?: number[];
            set?: {
                [key: string]: {
                    [key: string]: unknown;
                };
            };
            version?: number | null;
        };
        EditorAnswer: {
            completions: components["schemas"]["EditorName"][];
            error: components["schemas"]["EvaluationError"] | null;
            peak_memory_mb: number | null;
            problems: components["schemas"]["EditorProblem"][];
            run_ms: number;
            signatures: components["schemas"]["EditorSignature"][];
            text: string | null;
        };
        EditorIn: {
            column?: number;
            evaluator: components["schemas"]["EvaluatorIn"];
            given?: {
                [key: string]: unknown;
            };
            line?: number;
            /** @enum {string} */
            what: "completions" | "hover" | "signature" | "problems";
        };
        EditorName: {
            kind: string;
            name: string;
        };
        EditorProblem: {
            column: number;
            line: number;
            message: string;
        };
        EditorSignature: {
            parameter: string | null;
            text: string;
        };
        EnvironmentIn: {
            language?: components["schemas"]["Language"];
            packages: (string | components["schemas"]["PinIn"])[];
            python?: string | null;
        };
        EnvironmentInfo: {
            digest: string;
            packages: components["schemas"]["Package"][];
            runtime: string;
        };
        EnvironmentReport: {
            build_s: number | null;
            built_at: string | null;
            digest: string | null;
            error: string | null;
            import_ms: {
                [key: string]: number;
            };
            key: string;
            language: components["schemas"]["Language"];
            lock: string | null;
            notes: string[];
            packages: components["schemas"]["Package"][];
            runtime: string;
            size_bytes: number;
            status: components["schemas"]["BuildStatus"];
        };
        /** @enum {string} */
        ErrorCode: "syntax_error" | "load_error" | "entry_not_found" | "entry_ambiguous" | "binding_error" | "missing_input" | "user_exception" | "invalid_result" | "non_finite" | "result_too_large" | "timeout" | "memory_limit" | "process_limit" | "disk_limit" | "crashed" | "policy_violation" | "sandbox_lost" | "host_busy" | "target_failed" | "budget_exceeded";
        ErrorCount: {
            code: string;
            count: number;
            example_row: number;
        };
        EvalSetIn: {
            eval_set: {
                [key: string]: unknown;
            };
            executions?: {
                [key: string]: unknown;
            }[] | null;
        };
        EvaluateIn: {
            criteria?: unknown;
            evaluator: components["schemas"]["EvaluatorIn"] | string;
            inputs?: {
                [key: string]: unknown;
            };
            messages?: {
                [key: string]: unknown;
            }[] | null;
            outputs?: unknown;
            replay?: components["schemas"]["Replay"];
            trace?: {
                [key: string]: unknown;
            } | null;
            variables?: {
                [key: string]: unknown;
            } | null;
        };
        EvaluationError: {
            code: components["schemas"]["ErrorCode"];
            column: number | null;
            fix: components["schemas"]["Fix"] | null;
            hint: string | null;
            line: number | null;
            message: string;
            traceback: string | null;
            type: string | null;
        };
        EvaluationResult: {
            environment: components["schemas"]["EnvironmentInfo"];
            error: components["schemas"]["EvaluationError"] | null;
            evaluator: components["schemas"]["EvaluatorInfo"];
            label: string | null;
            logs: components["schemas"]["Logs"];
            metrics: {
                [key: string]: number;
            };
            native: {
                [key: string]: unknown;
            }[];
            not_loaded: string[];
            passed: boolean | null;
            reason: string | null;
            requests: unknown[];
            sandbox: components["schemas"]["SandboxInfo"];
            score: number | null;
            status: components["schemas"]["Status"];
            timing_ms: components["schemas"]["Timing"];
            usage: components["schemas"]["ModelUsage"] | null;
            value: unknown;
            warnings: components["schemas"]["Note"][];
        };
        Evaluator: {
            budget: components["schemas"]["ModelBudget"];
            code: string;
            contract: components["schemas"]["Contract"];
            data: {
                [key: string]: string;
            };
            files: {
                [key: string]: string;
            };
            judge: {
                [key: string]: unknown;
            } | null;
            language: components["schemas"]["Language"];
            limits: components["schemas"]["Limits"];
            models: string[];
            name: string | null;
            network: string[];
            packages: string[];
            path: string | null;
            policy: components["schemas"]["Policy"];
            python: string | null;
            secrets: {
                [key: string]: string;
            };
            settings: components["schemas"]["EvaluatorSettings"];
            threshold: number | null;
            version: number | null;
        };
        EvaluatorClass: {
            abstract: string[];
            config: {
                [key: string]: unknown;
            } | null;
            docstring: string | null;
            error: components["schemas"]["EvaluationError"] | null;
            id: string | null;
            line: number | null;
            name: string;
            types: {
                [key: string]: unknown;
            } | null;
        };
        EvaluatorFactsIn: {
            description?: string | null;
            sampling?: number | null;
            tags?: string[] | null;
        };
        EvaluatorIn: {
            budget?: components["schemas"]["BudgetIn"];
            code: string;
            contract?: components["schemas"]["Contract"];
            data?: {
                [key: string]: string;
            };
            files?: {
                [key: string]: string;
            };
            judge?: components["schemas"]["JudgeIn"] | null;
            language?: components["schemas"]["Language"];
            limits?: components["schemas"]["LimitsIn"];
            models?: string[];
            network?: string[];
            packages?: (string | components["schemas"]["PinIn"])[] | "auto";
            path?: string | null;
            policy?: components["schemas"]["Policy"];
            python?: string | null;
            secrets?: {
                [key: string]: components["schemas"]["CodeSecretIn"] | string;
            };
            settings?: components["schemas"]["SettingsIn"];
            threshold?: number | null;
        };
        EvaluatorInfo: {
            contract: components["schemas"]["Contract"] | null;
            contract_source: string | null;
            digest: string;
            grants: string[];
            language: components["schemas"]["Language"];
            name: string | null;
            version: number | null;
        };
        EvaluatorReads: {
            evaluator: string;
            inputs: string[];
            outputs: boolean;
        };
        EvaluatorReport: {
            author: string | null;
            cases: {
                [key: string]: unknown;
            }[];
            contract: components["schemas"]["Contract"] | null;
            contract_source: string | null;
            /** Format: date-time */
            created_at: string;
            created_by: string | null;
            description: string;
            digest: string;
            environment: components["schemas"]["EnvironmentInfo"] | null;
            evaluator: components["schemas"]["Evaluator"];
            failing_cases: components["schemas"]["CaseProblem"][] | null;
            last_job: components["schemas"]["EvaluatorScore"] | null;
            latest: number;
            message: string;
            name: string;
            origin: components["schemas"]["Origin"] | null;
            problem: components["schemas"]["EvaluationError"] | null;
            sampling: number;
            tags: string[];
            version: number;
        };
        EvaluatorScore: {
            /** Format: date-time */
            created_at: string;
            dataset: string | null;
            finished_at: string | null;
            job: string;
            name: string | null;
            score: components["schemas"]["JobScore"];
            version: number | null;
        };
        EvaluatorSettings: {
            config: {
                [key: string]: unknown;
            };
            correct_answer_key: string;
            entry: string | null;
            integers: ("bigint" | "text") | null;
            repair: boolean;
            score_output: string | null;
        };
        EvaluatorStatistics: {
            doubt: string | null;
            errors: components["schemas"]["ErrorCount"][];
            evaluator: string;
            failed: number;
            judged: number;
            metrics: components["schemas"]["Aggregate"][];
            not_passed: number | null;
            pass_interval: [
                number,
                number
            ] | null;
            pass_rate: number | null;
            rows: number;
            run_ms: components["schemas"]["Latency"] | null;
            scored: number;
            skipped: number;
            together: components["schemas"]["EvaluationResult"] | null;
            usage: components["schemas"]["ModelUsage"] | null;
            warnings: components["schemas"]["WarningCount"][];
        };
        ExampleIn: {
            answer: number | string;
            inputs?: {
                [key: string]: unknown;
            };
            outputs?: unknown;
            reason?: string;
        };
        /** @enum {string} */
        Executor: "local" | "ray";
        FailureGroup: {
            code: string;
            count: number;
            evaluator: string;
            hint: string | null;
            line: number | null;
            message: string;
            rows: number[];
            type: string | null;
        };
        /** @enum {string} */
        Failures: "exclude" | "zero";
        FieldProblem: {
            field: string;
            hint: string | null;
            message: string;
        };
        Fix: {
            candidates: components["schemas"]["FixCandidate"][];
            code: string | null;
            diff: string | null;
            unique: boolean;
        };
        FixCandidate: {
            code: string;
            diff: string;
        };
        FoundRow: {
            index: number;
            row: {
                [key: string]: unknown;
            };
        };
        FoundRows: {
            rows: components["schemas"]["FoundRow"][];
            total: number;
        };
        GroupStatistics: {
            failed: number;
            judged: number;
            mean: number | null;
            mean_rows: number;
            pass_interval: [
                number,
                number
            ] | null;
            pass_rate: number | null;
            rows: number;
            scored: number;
            skipped: number;
            std_error: number | null;
            value: unknown;
        };
        HostInfo: {
            backend: string;
            contract_fields: {
                [key: string]: string[];
            };
            contract_rows: {
                [key: string]: {
                    [key: string]: unknown;
                };
            };
            contracts: string[];
            default_limits: components["schemas"]["Limits"];
            languages: string[];
            limit_ceilings: components["schemas"]["Limits"];
            max_sandboxes: number;
            model_day: components["schemas"]["ModelBudget"] | null;
            model_requests: number;
            pythons: string[];
            resources: string[];
            runtimes: {
                [key: string]: string;
            };
            sandboxes: number;
            version: string;
            waiting: number;
            wires: string[];
        };
        Import: {
            datasets: components["schemas"]["ImportedDataset"][];
            dry_run: boolean;
            evaluators: components["schemas"]["ImportedEvaluator"][];
            left_out: components["schemas"]["ImportRemark"][];
            platform: string;
        };
        ImportedDataset: {
            columns: string[];
            name: string;
            rows: number;
            where: string;
        };
        ImportedEvaluator: {
            contract: components["schemas"]["Contract"] | null;
            evaluator: {
                [key: string]: unknown;
            };
            name: string;
            version: number | null;
            where: string;
        };
        ImportIn: {
            contract?: components["schemas"]["Contract"];
            dry_run?: boolean;
            files: {
                [key: string]: string;
            };
            force?: boolean;
            models?: string[];
            name?: string | null;
            packages?: string[];
            path: string;
            platform?: string | null;
            replace?: boolean;
        };
        ImportRemark: {
            reason: string;
            value: unknown;
            where: string;
        };
        InlineRowsIn: {
            rows: {
                [key: string]: unknown;
            }[];
        };
        /** @enum {string} */
        Isolation: "row" | "batch";
        JobConfig: {
            budget: components["schemas"]["ModelBudget"];
            executor: components["schemas"]["Executor"];
            failures: components["schemas"]["Failures"];
            isolation: components["schemas"]["Isolation"];
            limit_samples: number | null;
            max_failures: number | null;
            parallelism: number | null;
            replay: components["schemas"]["Replay"];
            shard: string | null;
        };
        JobConfigIn: {
            budget?: components["schemas"]["BudgetIn"];
            executor?: components["schemas"]["Executor"];
            failures?: components["schemas"]["Failures"];
            isolation?: components["schemas"]["Isolation"];
            limit_samples?: number | null;
            max_failures?: number | null;
            parallelism?: number | null;
            replay?: components["schemas"]["Replay"];
            shard?: string | null;
        };
        JobError: {
            code: string;
            message: string;
            row: number | null;
        };
        JobEstimate: {
            failed: number;
            over: string[];
            rows: number;
            sample: components["schemas"]["ModelUsage"];
            sampled: number;
            target: components["schemas"]["ModelUsage"] | null;
            usage: components["schemas"]["ModelUsage"];
        };
        JobEvaluatorReport: {
            digest: string;
            evaluator: components["schemas"]["Evaluator"];
            label: string;
            name: string | null;
            version: number | null;
        };
        JobIn: {
            config?: components["schemas"]["JobConfigIn"];
            dataset: string | components["schemas"]["InlineRowsIn"] | components["schemas"]["EvalSetIn"];
            evaluators?: (components["schemas"]["EvaluatorIn"] | string)[];
            mapping?: {
                [key: string]: string;
            };
            name?: string | null;
            target?: components["schemas"]["TargetIn"] | null;
        };
        JobNameIn: {
            name: string | null;
        };
        JobNode: {
            name: string;
            reason: string | null;
            rows: number;
            state: components["schemas"]["NodeState"];
        };
        JobProgress: {
            done: number;
            eta_s: number | null;
            failed: number;
            generated: number | null;
            rows: number;
            rows_per_s: number | null;
        };
        JobReport: {
            config: components["schemas"]["JobConfig"];
            /** Format: date-time */
            created_at: string;
            dataset: string;
            dataset_name: string | null;
            dataset_newest: number | null;
            dataset_version: number | null;
            doubt: string | null;
            error: components["schemas"]["JobError"] | null;
            evaluators: string[];
            finished_at: string | null;
            id: string;
            mapping: {
                [key: string]: string;
            };
            name: string | null;
            nodes: components["schemas"]["JobNode"][];
            progress: components["schemas"]["JobProgress"];
            running_s: number;
            schedule: string | null;
            scores: components["schemas"]["JobScore"][];
            started_at: string | null;
            status: components["schemas"]["JobStatus"];
            target: components["schemas"]["Target"] | null;
            title: string;
        };
        JobRow: {
            evaluator: string;
            index: number;
            output: unknown;
            request: {
                [key: string]: unknown;
            } | null;
            result: {
                [key: string]: unknown;
            };
            row: {
                [key: string]: unknown;
            };
        };
        JobRowDetail: {
            given: {
                [key: string]: unknown;
            } | null;
            index: number;
            results: components["schemas"]["JobRow"][];
            row: {
                [key: string]: unknown;
            };
        };
        JobRowPage: {
            next_cursor: string | null;
            rows: components["schemas"]["JobRow"][];
            total: number | null;
        };
        JobRowsIn: {
            job: string;
            rows: number[];
        };
        JobScore: {
            change: number | null;
            doubt: string | null;
            evaluator: string;
            failed: number;
            judged: number;
            mean: number | null;
            mean_rows: number;
            pass_rate: number | null;
            previous: string | null;
            rows: number;
            scored: number;
            skipped: number;
            warnings: components["schemas"]["WarningCount"][];
        };
        JobStatistics: {
            evaluators: components["schemas"]["EvaluatorStatistics"][];
        };
        /** @enum {string} */
        JobStatus: "queued" | "running" | "paused" | "completed" | "failed" | "cancelled";
        JudgeIn: {
            examples?: components["schemas"]["ExampleIn"][];
            explains?: boolean;
            inference?: {
                [key: string]: unknown;
            };
            labels?: components["schemas"]["JudgeLabelIn"][];
            model: string;
            name?: string;
            prompt: string;
            scale?: components["schemas"]["ScaleIn"] | null;
            structured?: boolean;
            system?: string | null;
        };
        JudgeLabelIn: {
            description?: string | null;
            label: string;
            score: number;
        };
        LabelEntry: {
            at: string | null;
            by: string | null;
            index: number;
            label: unknown;
            note: string;
            state: string;
        };
        LabelIn: {
            by?: string | null;
            label?: boolean | number | string | null;
            note?: string;
            skip?: boolean;
        };
        /** @enum {string} */
        LabelKind: "passed" | "score" | "choice";
        Labeller: {
            labelled: number;
            last_at: string | null;
            name: string | null;
            skipped: number;
        };
        LabelPage: {
            next_after: number | null;
            rows: components["schemas"]["LabelEntry"][];
        };
        LabelQueue: {
            /** Format: date-time */
            created_at: string;
            dataset: string | null;
            dataset_id: string;
            job: string | null;
            labelled: number;
            name: string;
            people: components["schemas"]["Labeller"][];
            rows: number;
            skipped: number;
            task: components["schemas"]["LabelTask"];
            waiting: number;
        };
        LabelQueueIn: {
            choices?: string[];
            dataset?: string | null;
            evaluator?: string | null;
            instructions?: string;
            job?: string | null;
            kind?: components["schemas"]["LabelKind"];
            limit?: number;
            max?: number;
            min?: number;
            name: string;
            rows?: components["schemas"]["RowChoice"] | number[];
            show_results?: boolean;
        };
        LabelRow: {
            at: string | null;
            by: string | null;
            given: {
                [key: string]: unknown;
            } | null;
            index: number;
            label: unknown;
            note: string;
            results: components["schemas"]["JobRow"][];
            row: {
                [key: string]: unknown;
            };
            state: string;
        };
        /** @enum {string} */
        LabelState: "waiting" | "labelled" | "skipped";
        LabelTask: {
            choices: string[];
            instructions: string;
            kind: components["schemas"]["LabelKind"];
            max: number;
            min: number;
            show_results: boolean;
        };
        /** @enum {string} */
        Language: "python" | "javascript" | "typescript";
        Latency: {
            p50: number;
            p90: number;
            p99: number;
        };
        LevelCount: {
            count: number;
            label: string;
        };
        Limits: {
            disk_mb: number;
            log_kb: number;
            memory_mb: number;
            processes: number;
            result_kb: number;
            timeout_s: number;
        };
        LimitsIn: {
            disk_mb?: number;
            log_kb?: number;
            memory_mb?: number;
            processes?: number;
            result_kb?: number;
            timeout_s?: number;
        };
        Logs: {
            stderr: string;
            stdout: string;
            truncated: boolean;
        };
        MappingAdvice: {
            columns: string[];
            mapping: {
                [key: string]: string;
            };
            reads: components["schemas"]["EvaluatorReads"][];
        };
        /** @enum {string} */
        Mend: "mapping" | "code";
        /** @enum {string} */
        Metric: "mean" | "pass_rate" | "failure_rate";
        MigrateIn: {
            adapt?: boolean;
            budget?: components["schemas"]["BudgetIn"];
            code: string;
            contract?: components["schemas"]["Contract"];
            data?: {
                [key: string]: string;
            };
            dataset?: string | null;
            files?: {
                [key: string]: string;
            };
            job?: string | null;
            judge?: components["schemas"]["JudgeIn"] | null;
            language?: components["schemas"]["Language"];
            limits?: components["schemas"]["LimitsIn"];
            mapping?: {
                [key: string]: string;
            };
            models?: string[];
            network?: string[];
            packages?: (string | components["schemas"]["PinIn"])[] | "auto";
            path?: string | null;
            policy?: components["schemas"]["Policy"];
            python?: string | null;
            rows?: components["schemas"]["RowIn"][];
            secrets?: {
                [key: string]: components["schemas"]["CodeSecretIn"] | string;
            };
            settings?: components["schemas"]["SettingsIn"];
            threshold?: number | null;
            /** @enum {string} */
            to?: "evaluate" | "main";
        };
        MigrateStoredIn: {
            adapt?: boolean;
            dataset?: string | null;
            dry_run?: boolean;
            force?: boolean;
            job?: string | null;
            mapping?: {
                [key: string]: string;
            };
            names?: string[];
            rows?: components["schemas"]["RowIn"][];
        };
        Migration: {
            changes: components["schemas"]["Remark"][];
            code: string;
            contract: components["schemas"]["Contract"] | null;
            diff: string;
            language: components["schemas"]["Language"];
            proof: components["schemas"]["Proof"] | null;
            status: components["schemas"]["MigrationStatus"];
            unresolved: components["schemas"]["Remark"][];
        };
        /** @enum {string} */
        MigrationStatus: "migrated" | "adapted" | "current" | "as_pasted" | "refused" | "no_evaluator";
        MissingImport: {
            file: string | null;
            hint: string | null;
            line: number;
            module: string;
            names: string[];
            optional: boolean;
            path: string | null;
            pin: string | null;
            problem: string | null;
        };
        ModelBudget: {
            cost: number | null;
            requests: number | null;
            tokens: number | null;
        };
        ModelChangeIn: {
            allow_host?: boolean;
            cached_price?: number | null;
            input_price?: number | null;
            kind?: components["schemas"]["ModelKind"] | null;
            model?: string | null;
            output_price?: number | null;
            retries?: number | null;
            secret?: string | null;
            timeout_s?: number | null;
            url?: string;
        };
        ModelHosts: {
            hosts: string[];
            may_allow: boolean;
        };
        ModelIn: {
            allow_host?: boolean;
            cached_price?: number | null;
            input_price?: number | null;
            key?: string | null;
            kind?: components["schemas"]["ModelKind"] | null;
            model?: string | null;
            name: string;
            output_price?: number | null;
            retries?: number | null;
            secret?: string | null;
            timeout_s?: number | null;
            url: string;
        };
        /** @enum {string} */
        ModelKind: "openai" | "anthropic";
        ModelTest: {
            cost: number | null;
            error: string | null;
            input_tokens: number;
            latency_ms: number;
            ok: boolean;
            output: string | null;
            output_tokens: number;
        };
        ModelUsage: {
            connections: number;
            cost: number | null;
            estimated: number;
            input_tokens: number;
            network_bytes: number;
            output_tokens: number;
            replayed: number;
            replayed_cost: number | null;
            replayed_input_tokens: number;
            replayed_output_tokens: number;
            requests: number;
            wait_ms: number;
        };
        NewEvaluatorIn: {
            budget?: components["schemas"]["BudgetIn"];
            cases?: components["schemas"]["CaseIn"][] | null;
            code: string;
            contract?: components["schemas"]["Contract"];
            data?: {
                [key: string]: string;
            };
            description?: string | null;
            files?: {
                [key: string]: string;
            };
            judge?: components["schemas"]["JudgeIn"] | null;
            language?: components["schemas"]["Language"];
            limits?: components["schemas"]["LimitsIn"];
            message?: string;
            models?: string[];
            name: string;
            network?: string[];
            packages?: (string | components["schemas"]["PinIn"])[] | "auto";
            path?: string | null;
            policy?: components["schemas"]["Policy"];
            python?: string | null;
            sampling?: number | null;
            secrets?: {
                [key: string]: components["schemas"]["CodeSecretIn"] | string;
            };
            settings?: components["schemas"]["SettingsIn"];
            tags?: string[] | null;
            threshold?: number | null;
        };
        NewVersionIn: {
            budget?: components["schemas"]["BudgetIn"];
            cases?: components["schemas"]["CaseIn"][] | null;
            code: string;
            contract?: components["schemas"]["Contract"];
            data?: {
                [key: string]: string;
            };
            description?: string | null;
            files?: {
                [key: string]: string;
            };
            judge?: components["schemas"]["JudgeIn"] | null;
            language?: components["schemas"]["Language"];
            limits?: components["schemas"]["LimitsIn"];
            message?: string;
            models?: string[];
            network?: string[];
            packages?: (string | components["schemas"]["PinIn"])[] | "auto";
            path?: string | null;
            policy?: components["schemas"]["Policy"];
            python?: string | null;
            sampling?: number | null;
            secrets?: {
                [key: string]: components["schemas"]["CodeSecretIn"] | string;
            };
            settings?: components["schemas"]["SettingsIn"];
            tags?: string[] | null;
            threshold?: number | null;
        };
        /** @enum {string} */
        NodeState: "starting" | "ready" | "excluded" | "lost";
        Note: {
            code: string;
            message: string;
            remedy: string | null;
        };
        Origin: {
            proof: components["schemas"]["Proof"];
            version: number;
        };
        Package: {
            name: string;
            requested: boolean;
            version: string;
        };
        PackageVersions: {
            language: components["schemas"]["Language"];
            name: string;
            versions: string[];
        };
        Pairs: {
            after: string;
            before: string;
            binned: boolean;
            metric: string;
            n: number;
            points: components["schemas"]["Point"][];
        };
        PersonIn: {
            by?: string | null;
        };
        PinIn: {
            name: string;
            version: string;
        };
        Point: {
            after: number;
            before: number;
            count: number;
            row: number;
        };
        /** @enum {string} */
        Policy: "none" | "restricted";
        ProblemBody: {
            code: string;
            detail: string;
            errors: components["schemas"]["FieldProblem"][];
            status: number;
            title: string;
            type: string;
        };
        Proof: {
            differences: components["schemas"]["RowDifference"][];
            differing: number;
            generated: boolean;
            left_out: number;
            rows: number;
            scored: number;
            verdict: components["schemas"]["ProofVerdict"];
            why: string | null;
        };
        /** @enum {string} */
        ProofVerdict: "proven" | "differs" | "not_comparable";
        Reads: {
            inputs: string[];
            outputs: string[];
        };
        ReadyJudge: {
            cases: {
                [key: string]: unknown;
            }[];
            description: string;
            judge: {
                [key: string]: unknown;
            };
            name: string;
            threshold: number;
            title: string;
        };
        RecordedAnswers: {
            answers: number;
            stored_bytes: number;
        };
        RegisteredModel: {
            cached_price: number | null;
            created_at: string | null;
            input_price: number | null;
            kind: components["schemas"]["ModelKind"];
            model: string;
            name: string;
            operator: boolean;
            output_price: number | null;
            retries: number;
            secret: string | null;
            timeout_s: number;
            url: string;
        };
        Remark: {
            line: number | null;
            message: string;
        };
        /** @enum {string} */
        Replay: "off" | "prefer" | "require";
        Row: {
            answers: {
                [key: string]: unknown;
            };
            criteria: unknown;
            index: number | null;
            inputs: {
                [key: string]: unknown;
            };
            messages: unknown[] | null;
            outputs: unknown;
            requests: unknown[];
            response: {
                [key: string]: unknown;
            } | null;
            trace: {
                [key: string]: unknown;
            } | null;
            variables: {
                [key: string]: unknown;
            } | null;
        };
        RowChange: {
            after: {
                [key: string]: unknown;
            } | null;
            before: {
                [key: string]: unknown;
            } | null;
            index: number;
            kind: string;
        };
        RowChanges: {
            added: number;
            changed: number;
            removed: number;
            rows: components["schemas"]["RowChange"][];
        };
        /** @enum {string} */
        RowChoice: "all" | "scored" | "failed" | "passed" | "not_passed";
        RowDiff: {
            after: string;
            before: string;
            outputs: string;
            results: string;
            row: number;
        };
        RowDifference: {
            given: components["schemas"]["Row"];
            message: string;
            new: components["schemas"]["EvaluationResult"];
            old: components["schemas"]["EvaluationResult"];
            row: number;
        };
        RowIn: {
            criteria?: unknown;
            inputs?: {
                [key: string]: unknown;
            };
            messages?: {
                [key: string]: unknown;
            }[] | null;
            outputs?: unknown;
            trace?: {
                [key: string]: unknown;
            } | null;
            variables?: {
                [key: string]: unknown;
            } | null;
        };
        RunIn: {
            argv?: string[];
            code: string;
            env?: {
                [key: string]: string;
            };
            files?: {
                [key: string]: string;
            };
            language?: components["schemas"]["Language"];
            limits?: components["schemas"]["LimitsIn"];
            packages?: (string | components["schemas"]["PinIn"])[];
            python?: string | null;
            stdin?: string;
        };
        RunReport: {
            error: {
                [key: string]: unknown;
            } | null;
            exit_code: number | null;
            stderr: string;
            stdout: string;
            truncated: boolean;
        };
        SandboxInfo: {
            backend: string;
            peak_memory_kb: number | null;
            warm: boolean;
        };
        ScaleIn: {
            max: number;
            min: number;
        };
        ScheduleChangeIn: {
            cron?: string | null;
            paused?: boolean | null;
            timezone?: string | null;
        };
        ScheduleIn: {
            cron: string;
            job: components["schemas"]["JobIn"];
            name: string;
            timezone?: string;
        };
        ScheduleReport: {
            config: components["schemas"]["JobConfig"];
            /** Format: date-time */
            created_at: string;
            cron: string;
            dataset: string | null;
            evaluators: string[];
            last_at: string | null;
            last_error: string | null;
            last_job: string | null;
            mapping: {
                [key: string]: string;
            };
            missed: number;
            missed_more: boolean;
            name: string;
            next_runs: string[];
            paused: boolean;
            timezone: string;
        };
        ScoredJob: {
            /** Format: date-time */
            created_at: string;
            id: string;
            title: string;
        };
        ScoreHistory: {
            dataset: string;
            evaluators: components["schemas"]["ScoreLine"][];
            jobs: components["schemas"]["ScoredJob"][];
        };
        ScoreLine: {
            evaluator: string;
            scores: (components["schemas"]["JobScore"] | null)[];
        };
        SecretIn: {
            /** Format: password */
            value: string;
        };
        SecretNameIn: {
            secret: string;
        };
        SecretReport: {
            /** Format: date-time */
            created_at: string;
            in_code: boolean;
            name: string;
            /** Format: date-time */
            updated_at: string;
        };
        SettingsIn: {
            config?: {
                [key: string]: unknown;
            };
            correct_answer_key?: string;
            entry?: string | null;
            integers?: ("bigint" | "text") | null;
            repair?: boolean;
            score_output?: string | null;
        };
        /** @enum {string} */
        Sort: "row" | "score" | "-score" | "run_ms" | "-run_ms" | "status";
        /** @enum {string} */
        Status: "scored" | "skipped" | "failed";
        StoredMigration: {
            made: number | null;
            migration: components["schemas"]["Migration"];
            name: string;
            version: number;
        };
        Target: {
            agent: {
                [key: string]: unknown;
            } | null;
            api_key: string | null;
            base_url: string;
            completion: boolean;
            concurrency: number;
            inference: {
                [key: string]: unknown;
            };
            messages: {
                [key: string]: unknown;
            }[];
            model: string;
            prompt_template: string | null;
            retries: number;
            system: string | null;
            timeout_s: number;
        };
        TargetIn: {
            agent?: {
                [key: string]: unknown;
            } | null;
            api_key?: components["schemas"]["SecretNameIn"] | null;
            base_url: string;
            completion?: boolean;
            concurrency?: number;
            inference?: {
                [key: string]: unknown;
            };
            messages?: {
                [key: string]: unknown;
            }[] | null;
            model: string;
            prompt_template?: string | null;
            retries?: number;
            system?: string | null;
            timeout_s?: number;
        };
        Timing: {
            environment: number;
            load: number;
            queue: number;
            run: number;
            total: number;
        };
        TopValue: {
            count: number;
            value: string;
        };
        TraceReport: {
            evaluator: string;
            number: number;
            /** Format: date-time */
            received_at: string;
            result: {
                [key: string]: unknown;
            };
            trace: {
                [key: string]: unknown;
            };
            trace_id: string;
        };
        TraceRowsIn: {
            evaluator: string;
            traces: number[];
        };
        UsageReport: {
            datasets_bytes: number;
            evaluators_bytes: number;
            files_bytes: number;
            jobs_bytes: number;
            labels_bytes: number;
            quota_bytes: number;
            total_bytes: number;
            traces_bytes: number;
            workspace: string;
        };
        WarningCount: {
            code: string;
            count: number;
            doubtful: boolean;
            mend: components["schemas"]["Mend"] | null;
            message: string;
            remedy: string | null;
            rows: number[];
            varies: boolean;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
