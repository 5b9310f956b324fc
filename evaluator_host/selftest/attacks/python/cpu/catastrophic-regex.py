import re
def attack(inputs): return re.match(r'(a+)+$', 'a' * 64 + '!')
