function validate(input, output, expectedOutput) {
  return output === expectedOutput;
}
