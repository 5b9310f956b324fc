import json
import os
import socket
import urllib.parse

PLACE = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])


def send(text):
    """Send these bytes on a new connection to the gateway, and return the answer."""
    with socket.create_connection((PLACE.hostname, PLACE.port)) as connection:  # the row's time limit ends the wait
        connection.sendall(text.encode())
        answer = b""
        try:
            while data := connection.recv(65536):
                answer += data
        except OSError:
            pass
    return answer.decode("utf-8", "replace")


def request(question, host=PLACE.netloc):
    """Return the request that sends this question to the granted model."""
    body = json.dumps({"model": "canary", "messages": [{"role": "user", "content": question}]})
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head + body


def asked(question):
    """Return how often the model has got this question."""
    body = send(request("count " + question)).partition("\r\n\r\n")[2]
    return int(json.loads(body)["choices"][0]["message"]["content"].rpartition("|")[2])
