/** Every page, by path. A page's module exports its component as default, and is loaded on the first visit. */
import type { ComponentType } from "preact";

export interface PageProps {
  /** The named parts of the path. */
  params: Record<string, string>;
  query: URLSearchParams;
}

export interface Route {
  path: string;
  title: string;
  /** The navigation entry that is highlighted. */
  section: string;
  /** Resources that the page shows; hosts with none of them do not have the page. */
  of?: readonly string[];
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}

/** The first parts of these paths are also in evaluator_host/web/workbench.py, which answers them with the page. */
export const ROUTES: readonly Route[] = [
  { path: "/", title: "Workbench", section: "/", load: () => import("./pages/workbench") },
  { path: "/migrate", title: "Import and migration", section: "/migrate", load: () => import("./pages/migrate") },
  { path: "/evaluators", title: "Evaluators", section: "/evaluators", load: () => import("./pages/evaluators") },
  { path: "/evaluators/:name", title: "Evaluator", section: "/evaluators", load: () => import("./pages/evaluator") },
  { path: "/datasets", title: "Data sets", section: "/datasets", load: () => import("./pages/datasets") },
  { path: "/datasets/:name", title: "Data set", section: "/datasets", load: () => import("./pages/dataset") },
  { path: "/jobs", title: "Jobs", section: "/jobs", load: () => import("./pages/jobs") },
  { path: "/jobs/new", title: "Start a job", section: "/jobs", load: () => import("./pages/job-new") },
  { path: "/jobs/:id", title: "Job", section: "/jobs", load: () => import("./pages/job") },
  { path: "/jobs/:id/rows/:index", title: "Row of a job", section: "/jobs", load: () => import("./pages/job-row") },
  { path: "/compare", title: "Comparison", section: "/jobs", load: () => import("./pages/compare-many") },
  { path: "/compare/:before/:after", title: "Comparison", section: "/jobs", load: () => import("./pages/compare") },
  { path: "/labels", title: "Review", section: "/labels", of: ["labels"], load: () => import("./labels/labels") },
  { path: "/labels/:name", title: "Label queue", section: "/labels", of: ["labels"], load: () => import("./labels/label-queue") },
  { path: "/jobs/:id/agreement", title: "Agreement with people", section: "/jobs", of: ["labels"], load: () => import("./pages/agreement") },
  { path: "/judge", title: "Judge", section: "/evaluators", load: () => import("./pages/judge") },
  { path: "/models", title: "Models", section: "/models", load: () => import("./pages/models") },
  { path: "/schedules", title: "Schedules", section: "/schedules", of: ["schedules", "alerts"], load: () => import("./schedules/schedules") },
  { path: "/help", title: "Help", section: "/help", load: () => import("./pages/help") },
  { path: "/help/:page", title: "Help", section: "/help", load: () => import("./pages/help") },
  { path: "/help/:folder/:page", title: "Help", section: "/help", load: () => import("./pages/help") },
  { path: "/environments", title: "Packages", section: "/environments", load: () => import("./pages/environments") },
  { path: "/environments/:key", title: "Packages", section: "/environments", load: () => import("./pages/environment") },
];

export interface Entry {
  to: string;
  label: string;
  of?: readonly string[];
}

export const NAVIGATION: readonly Entry[] = [
  { to: "/", label: "Workbench" },
  { to: "/evaluators", label: "Evaluators" },
  { to: "/datasets", label: "Data sets" },
  { to: "/jobs", label: "Jobs" },
  { to: "/labels", label: "Review", of: ["labels"] },
];

/** Pages in the menu of the gear, for things that are set up once. */
export const SETUP: readonly Entry[] = [
  { to: "/models", label: "Models" },
  { to: "/models?show=secrets", label: "Secrets", of: ["secrets"] },
  { to: "/schedules", label: "Schedules", of: ["schedules"] },
  { to: "/environments", label: "Packages" },
  { to: "/models?show=keys", label: "API keys" },
  { to: "/migrate", label: "Import and migration" },
  { to: "/models?show=usage", label: "Usage", of: ["usage"] },
];
