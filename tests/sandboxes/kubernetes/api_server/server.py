"""A Kubernetes API server of our own, as much of one as sandboxes, kubectl and the Python client ask for.

Its behaviour is pinned to what a real one was recorded doing, case by case, in `test_kubernetes_recorded.py`.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web

from tests.sandboxes.kubernetes.api_server import commands
from tests.sandboxes.kubernetes.api_server.cluster import Cluster, StatusError

PODS = "/api/v1/namespaces/{namespace}/pods"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
_VERBS = ["create", "delete", "get", "list", "patch", "watch"]


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[Cluster, str]]:
    """A server on a free port, and its address."""
    server = Server()
    runner = web.AppRunner(server.app, shutdown_timeout=0.02, max_line_size=1 << 20, handler_cancellation=False)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield server.cluster, f"http{'s' if tls else ''}://127.0.0.1:{port}"
    finally:
        await server.cluster.aclose()
        await runner.cleanup()


class Server:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self.app = web.Application(middlewares=[self._guard])
        add = self.app.router.add_route
        add("GET", "/api", self._versions)
        add("GET", "/apis", self._groups)
        add("GET", "/api/v1", self._resources)
        add("GET", "/version", self._version)
        add("POST", PODS, self._create)
        add("GET", PODS, self._list)
        add("GET", PODS + "/{name}", self._get)
        add("PATCH", PODS + "/{name}", self._patch)
        add("DELETE", PODS + "/{name}", self._delete)
        add("GET", PODS + "/{name}/exec", self._exec)
        add("POST", POLICIES, self._create_policy)
        add("GET", POLICIES + "/{name}", self._get_policy)
        add("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", self._review)

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        cluster = self.cluster
        cluster.requests.append(f"{request.method} {request.path_qs}")
        try:
            if cluster.token is not None and request.headers.get("Authorization") != f"Bearer {cluster.token}":
                raise StatusError(401, "Unauthorized", "Unauthorized")
            if cluster.faults.calls and not request.path.endswith("/exec"):
                code, after = cluster.faults.calls.pop(0)
                headers = {} if after is None else {"Retry-After": after}
                return _status(StatusError(code, "TooManyRequests", "please try again later"), headers)
            return await handler(request)
        except StatusError as error:
            return _status(error)
        except web.HTTPNotFound:
            return _status(StatusError(404, "NotFound", "the server could not find the requested resource"))

    async def _create(self, request: web.Request) -> web.Response:
        manifest = await request.json()
        return web.json_response(self.cluster.create(request.match_info["namespace"], manifest), status=201)

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(self.cluster.find(**request.match_info).object)

    async def _patch(self, request: web.Request) -> web.Response:
        return web.json_response(self.cluster.patch(self.cluster.find(**request.match_info), await request.json()))

    async def _delete(self, request: web.Request) -> web.Response:
        body = await request.read()
        options = json.loads(body) if body else {}
        grace = options.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds", 30))
        uid = (options.get("preconditions") or {}).get("uid")
        return web.json_response(self.cluster.delete(**request.match_info, uid=uid, grace=float(grace)))

    async def _list(self, request: web.Request) -> web.StreamResponse:
        namespace, selector = request.match_info["namespace"], request.query.get("labelSelector", "")
        if commands.wants(request, "watch"):
            return await self._watch(request, namespace, selector)
        listed = self.cluster.list(namespace, selector)
        field, _, value = request.query.get("fieldSelector", "").partition("=")
        if field == "metadata.name":  # kubectl asks so for one
            listed["items"] = [each for each in listed["items"] if each["metadata"]["name"] == value]
        return web.json_response(listed)

    async def _watch(self, request: web.Request, namespace: str, selector: str) -> web.StreamResponse:
        cluster, faults = self.cluster, self.cluster.faults
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if faults.watch_gone:
            faults.watch_gone -= 1
            gone = StatusError(410, "Expired", "too old resource version: 1 (100)")
            await _line(response, {"type": "ERROR", "object": json.loads(_status(gone).body)})  # type: ignore[arg-type]
            return response
        if faults.watch_garbage:
            faults.watch_garbage -= 1
            await response.write(b'{"type": "MODI')
            if request.transport is not None:
                request.transport.abort()
            return response
        news, told = cluster.watcher(), 0
        version = int(request.query.get("resourceVersion") or 0)
        with suppress(ConnectionError, asyncio.CancelledError):
            while True:
                for version, event in cluster.since(version, namespace, selector):  # noqa: B007, B020
                    await _line(response, event)
                    told += 1
                    if faults.watch_ends_after is not None and told >= faults.watch_ends_after:
                        cluster.forget(news)
                        return response
                news.clear()
                await news.wait()
        cluster.forget(news)
        return response

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        faults = self.cluster.faults
        if faults.handshake:
            code = faults.handshake.pop(0)
            reasons = {403: "Forbidden", 404: "NotFound", 500: "InternalError"}
            raise StatusError(code, reasons.get(code, ""), f"refused with {code}, as asked")
        pod = self.cluster.find(**request.match_info)
        name = pod.object["spec"]["containers"][0]["name"]
        asked = request.query.get("container") or name
        if asked != name:
            raise StatusError(400, "BadRequest", f"container {asked} is not valid for pod {pod.name}")
        if not request.query.getall("command", []):
            raise StatusError(400, "BadRequest", "you must specify at least 1 command for the container")
        if pod.container is None or pod.object["status"]["phase"] != "Running":
            raise StatusError(500, "InternalError", f'unable to upgrade connection: container not found ("{asked}")')
        protocol = commands.choose(self.cluster, request)
        return await commands.serve(self.cluster, request, pod.container, protocol)

    async def _create_policy(self, request: web.Request) -> web.Response:
        policy, namespace = await request.json(), request.match_info["namespace"]
        name = policy["metadata"]["name"]
        if "create networkpolicies" in self.cluster.faults.denied:
            raise StatusError(403, "Forbidden", f'networkpolicies.networking.k8s.io "{name}" is forbidden')
        self.cluster.policies[namespace, name] = policy
        return web.json_response(policy, status=201)

    async def _get_policy(self, request: web.Request) -> web.Response:
        where = (request.match_info["namespace"], request.match_info["name"])
        if where not in self.cluster.policies:
            raise StatusError(404, "NotFound", f'networkpolicies.networking.k8s.io "{where[1]}" not found')
        return web.json_response(self.cluster.policies[where])

    async def _review(self, request: web.Request) -> web.Response:
        review = await request.json()
        asked = review["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        allowed = f"{asked['verb']} {resource}" not in self.cluster.faults.denied
        return web.json_response({**review, "status": {"allowed": allowed}}, status=201)

    async def _versions(self, request: web.Request) -> web.Response:
        return web.json_response({"kind": "APIVersions", "versions": ["v1"]})

    async def _groups(self, request: web.Request) -> web.Response:
        return web.json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})

    async def _resources(self, request: web.Request) -> web.Response:
        pods = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": _VERBS}
        command = {"name": "pods/exec", "singularName": "", "namespaced": True, "kind": "PodExecOptions"}
        resources = [pods, {**command, "verbs": ["create", "get"]}]
        listed = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": resources}
        return web.json_response(listed)

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"major": "1", "minor": "32", "gitVersion": "v1.32.0"})


async def _line(response: web.StreamResponse, event: dict[str, Any]) -> None:
    await response.write(json.dumps(event).encode() + b"\n")


def _status(error: StatusError, headers: dict[str, str] | None = None) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": str(error),
        "reason": error.reason,
        "code": error.code,
    }
    return web.json_response(status, status=error.code, headers=headers)
