function validate(input: string, output: string, expectedOutput: string): boolean {
  return output === expectedOutput;
}
