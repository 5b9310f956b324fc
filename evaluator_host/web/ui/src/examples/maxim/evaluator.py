def validate(input, output, expected_output, context, **kwargs):
    return output == expected_output
