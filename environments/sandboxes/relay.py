"""The relay: connections to a port of a sandbox's loopback, carried over one stream of bytes to somewhere else.

The same code is at both ends. The far one is a program of its own, which is this file as text: it needs Python 3.7 and
nothing besides. It listens on 127.0.0.1, says on which port, and opens a connection for each that it takes; the near
one (`environments.sandboxes.relaying`) connects each to an address of ours. A frame is a number of a connection, a
kind, a size, and for `DATA` so many bytes:

    PORT   the far end listens; the size is the port's number
    OPEN   a connection begins
    DATA   bytes of it
    END    there are no more of them in this direction
    CLOSE  it is over, in both directions
    MORE   so many bytes were passed on: as many more may be sent

An end sends at most `WINDOW` bytes of a connection that were not passed on at the other: one that is not read holds up
itself alone, and what an end keeps is bounded. Who breaks these rules is hung up on: the far end may be in the hands of
what runs in the sandbox.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
from typing import Any, Callable

PORT, OPEN, DATA, END, CLOSE, MORE = range(6)
HEAD = struct.Struct(">IBI")
WINDOW = 1 << 20
CHUNK = 1 << 16
MOST_CONNECTIONS = 256


class RelayBroken(Exception):
    """The other end breaks the rules, or is gone."""


class CarriedConnection:
    """One connection at this end."""

    def __init__(self, number: int, sock: socket.socket) -> None:
        self.number = number
        self.socket = sock
        self.out = bytearray()
        self.room = WINDOW
        self.read_ended = False
        self.write_ends = False
        self.wrote_end = False


class Relay:
    """One end. `listener` takes connections; or `connect` makes one, and may raise `OSError`."""

    def __init__(
        self,
        source: int,
        sink: int,
        listener: socket.socket | None = None,
        connect: Callable[[], socket.socket] | None = None,
    ) -> None:
        """`source` and `sink` are the descriptors of the stream to the other end."""
        self.source, self.sink = source, sink
        self.listener, self.connect = listener, connect
        self.connections: dict[int, CarriedConnection] = {}
        self.number = 0
        self.incoming, self.outgoing = bytearray(), bytearray()
        self.selector = selectors.DefaultSelector()
        for descriptor in {source, sink}:
            os.set_blocking(descriptor, False)
        if listener is not None:
            listener.setblocking(False)
            self.send(0, PORT, listener.getsockname()[1])

    def run(self) -> None:
        """Carry until the stream ends. Raises `RelayBroken`."""
        try:
            while True:
                self.turn()
        except (ConnectionError, RelayBroken) as error:
            raise RelayBroken(str(error) or "the stream broke") from None
        finally:
            for connection in list(self.connections.values()):
                connection.socket.close()
            self.selector.close()

    def turn(self) -> None:
        """Wait for something, and deal with it."""
        wanted = selectors.EVENT_WRITE if self.outgoing else 0
        if self.sink == self.source:
            self.watch(self.source, selectors.EVENT_READ | wanted)
        else:
            self.watch(self.source, selectors.EVENT_READ)
            self.watch(self.sink, wanted)
        full = len(self.outgoing) > WINDOW
        if self.listener is not None:
            taking = not full and len(self.connections) < MOST_CONNECTIONS
            self.watch(self.listener, selectors.EVENT_READ if taking else 0)
        for connection in self.connections.values():
            reads = not connection.read_ended and connection.room > 0 and not full
            writes = connection.out or (connection.write_ends and not connection.wrote_end)
            events = (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if writes else 0)
            self.watch(connection.socket, events, connection)
        for key, events in self.selector.select():
            if not isinstance(key.data, CarriedConnection):
                self.serve(key.fileobj, events)
            elif self.connections.get(key.data.number) is key.data:
                self.carry(key.data, events)

    def watch(self, thing: Any, events: int, data: CarriedConnection | None = None) -> None:
        """Have the selector wait for these events."""
        try:
            key = self.selector.get_key(thing)
        except KeyError:
            if events:
                self.selector.register(thing, events, data)
            return
        if not events:
            self.selector.unregister(thing)
        elif key.events != events:
            self.selector.modify(thing, events, data)

    def serve(self, thing: Any, events: int) -> None:
        """The stream or the listener is ready."""
        if self.listener is not None and thing is self.listener:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.number = self.number % 0xFFFFFFFF + 1
            self.add(self.number, sock)
            self.send(self.number, OPEN)
            return
        if events & selectors.EVENT_WRITE:
            self.flush()
        if events & selectors.EVENT_READ:
            try:
                content = os.read(self.source, CHUNK)
            except BlockingIOError:
                return
            if not content:
                raise RelayBroken("the stream ended")
            self.incoming += content
            self.take()

    def flush(self) -> None:
        """Write what can be written to the stream."""
        with contextlib.suppress(BlockingIOError):
            del self.outgoing[: os.write(self.sink, self.outgoing[:CHUNK])]

    def take(self) -> None:
        """Deal with whole frames."""
        at = 0
        while len(self.incoming) - at >= HEAD.size:
            number, kind, size = HEAD.unpack_from(self.incoming, at)
            length = size if kind == DATA else 0
            if length > WINDOW or kind > MORE:
                raise RelayBroken("the other end sends what is no frame")
            if len(self.incoming) - at - HEAD.size < length:
                break
            start = at + HEAD.size
            at = start + length
            self.hear(number, kind, size, bytes(self.incoming[start:at]))
        del self.incoming[:at]

    def hear(self, number: int, kind: int, size: int, content: bytes) -> None:
        """Deal with one frame."""
        if kind == OPEN:
            self.opened(number)
        elif number in self.connections:
            connection = self.connections[number]
            if kind == DATA:
                connection.out += content
                if len(connection.out) > WINDOW or connection.write_ends:
                    raise RelayBroken("the other end sends more than it may")
            elif kind == MORE:
                connection.room += size
                if connection.room > WINDOW:
                    raise RelayBroken("the other end allows more than there is")
            elif kind == END:
                connection.write_ends = True
            elif kind == CLOSE:
                self.drop(connection, tell=False)

    def opened(self, number: int) -> None:
        """The other end has taken a connection."""
        if self.connect is None or number in self.connections or len(self.connections) > MOST_CONNECTIONS:
            raise RelayBroken("the other end opens what it may not")
        try:
            self.add(number, self.connect())
        except OSError:
            self.send(number, CLOSE)

    def add(self, number: int, sock: socket.socket) -> None:
        """A new connection of this end."""
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections[number] = CarriedConnection(number, sock)

    def carry(self, connection: CarriedConnection, events: int) -> None:
        """A connection is ready."""
        try:
            if events & selectors.EVENT_READ:
                content = connection.socket.recv(min(CHUNK, connection.room))
                if content:
                    connection.room -= len(content)
                    self.send(connection.number, DATA, len(content), content)
                else:
                    connection.read_ended = True
                    self.send(connection.number, END)
            if events & selectors.EVENT_WRITE and connection.out:
                sent = connection.socket.send(connection.out[:CHUNK])
                del connection.out[:sent]
                self.send(connection.number, MORE, sent)
            if connection.write_ends and not connection.out and not connection.wrote_end:
                connection.wrote_end = True
                connection.socket.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return
        except OSError:
            self.drop(connection, tell=True)
            return
        if connection.read_ended and connection.wrote_end:
            self.drop(connection, tell=False)

    def drop(self, connection: CarriedConnection, tell: bool) -> None:
        """Forget a connection; `tell` the other end."""
        self.watch(connection.socket, 0)
        connection.socket.close()
        del self.connections[connection.number]
        if tell:
            self.send(connection.number, CLOSE)

    def send(self, number: int, kind: int, size: int = 0, content: bytes = b"") -> None:
        """Have a frame written."""
        self.outgoing += HEAD.pack(number, kind, size)
        self.outgoing += content


def main() -> None:
    """The far end, on stdin and stdout."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    with contextlib.suppress(RelayBroken):
        Relay(0, 1, listener).run()


if __name__ == "__main__":
    main()
