"""Inside of a container of the stand-in: starts what it is told, with the three streams that come along.

Told over a socket of packets: `{"number", "argv"}` with three descriptors; answers `{"number", "code"}`, the code as
Python has it, or `{"number", "error"}` when it cannot be started.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading


def wait(told: socket.socket, number: int, child: subprocess.Popen[bytes]) -> None:
    code = child.wait()
    with contextlib.suppress(OSError):
        told.send(json.dumps({"number": number, "code": code}).encode())


def main() -> None:
    told = socket.socket(fileno=int(sys.argv[1]))
    told.send(b"{}")
    while True:
        data, streams, _, _ = socket.recv_fds(told, 1 << 18, 3)
        if not data:
            return
        asked = json.loads(data)
        try:
            child = subprocess.Popen(
                asked["argv"], stdin=streams[0], stdout=streams[1], stderr=streams[2], cwd="/", start_new_session=True
            )
        except OSError as error:
            told.send(json.dumps({"number": asked["number"], "error": error.strerror}).encode())
        else:
            threading.Thread(target=wait, args=(told, asked["number"], child), daemon=True).start()
        for stream in streams:
            os.close(stream)


main()
