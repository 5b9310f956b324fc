def attack(inputs):
    while True:
        try: raise SystemExit
        except BaseException: pass
