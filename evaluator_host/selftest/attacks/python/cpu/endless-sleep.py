import time
def attack(inputs): time.sleep(10**6)
