"""A node for tests: it answers as a function says, and remembers what it was asked."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def granted(request, **more):
    lease = {"id": request["lease_id"], "charges": request.get("charges", []), "ttl": "5s", "tracked": True}
    return 200, {"decision": "GRANTED", "source": "CONSENSUS", "lease": lease, "denials": [], **more}


class Node:
    def __init__(self, answer=None):
        self.asked, self.opened = [], 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                outer.opened += 1
                super().setup()

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append((self.path.rpartition(":")[2], request, dict(self.headers)))
                status, body = outer.answer(self.path.rpartition(":")[2], request)
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_):
                # A client that has left is no news.
                pass

        self.headers = {}
        self.answer = answer or self.grants
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @staticmethod
    def grants(call, request):
        if call == "acquire":
            return granted(request)
        return 200, {"state": "SETTLED" if call == "settle" else "RELEASED", "settlements": [], "ttl": "0s", "booked": []}

    def calls(self, name):
        return [request for call, request, _ in self.asked if call == name]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
