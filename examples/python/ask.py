"""Asks a service at URL, inside the limit "demo" of the nodes at NODES, again as it is told.

    pip install ./clients/python
    python3 examples/python/ask.py http://127.0.0.1:8080/
"""

import os
import sys
import urllib.request

from quorlease import Charge, Client, Denied, retry

nodes = os.environ.get("NODES", "http://127.0.0.1:7301,http://127.0.0.1:7302,http://127.0.0.1:7303")
client = Client(nodes.split(","), client="notes")


@retry(attempts=3)
def ask(url, *, headers):
    with client.limiter(Charge("demo", "requests"), max_wait=5):
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return answer.read().decode()


try:
    print(ask(sys.argv[1]))
except Denied as denied:
    sys.exit(f"{denied}")
finally:
    client.close()
