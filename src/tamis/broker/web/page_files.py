"""The files of the page for people, which needs nothing from elsewhere."""

from importlib.resources import files

from aiohttp import hdrs, web

FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


async def page_file(request: web.Request) -> web.Response:
    """The file at a path."""
    name, kind = FILES[request.path]
    text = files("tamis.broker.web").joinpath("page", name).read_bytes()
    return web.Response(body=text, headers={hdrs.CONTENT_TYPE: kind, **_HEADERS})
