function exec_evaluation(turn) {
  const said = turn.evaluate_target_output_fields.actual_output.text;
  const wanted = turn.evaluate_dataset_fields.reference_output.text;
  return { score: said === wanted ? 1 : 0, reason: "compared as text" };
}
