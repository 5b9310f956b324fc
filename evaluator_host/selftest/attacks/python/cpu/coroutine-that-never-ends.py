import asyncio
def attack(inputs): return asyncio.run(asyncio.Event().wait())
