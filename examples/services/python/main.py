"""A tiny service. Nothing in it knows of quotas."""

import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hello(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # Envoy keeps its connections
    wbufsize = -1  # one packet an answer

    def do_GET(self):
        body = b"hello from Python\n"
        self.send_response(200)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


signal.signal(signal.SIGTERM, lambda *_: sys.exit())
# On loopback: whoever wants in comes through Envoy, and so through the quota.
ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Hello).serve_forever()
