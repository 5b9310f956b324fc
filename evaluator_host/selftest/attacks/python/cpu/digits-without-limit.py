import sys
def attack(inputs):
    sys.set_int_max_str_digits(0)
    return len(str(7 ** 10**8))
