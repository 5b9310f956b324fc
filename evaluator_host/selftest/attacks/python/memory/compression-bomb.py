import zlib

def attack(inputs):
    packed = zlib.compress(bytes(30 << 20), 1)
    return len([zlib.decompress(packed) for _ in range(300 // 30)])
