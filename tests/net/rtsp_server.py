"""rtsp_server.py ADDRESS PORT [basic | digest]: GStreamer's RTSP server with a film of its own making at /film, for all, or for
"watcher" with the password "hush" alone. For Debian's Python, which has gi."""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
gi.require_version("GstRtsp", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

FILM = ("( videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=15/1 ! x264enc tune=zerolatency key-int-max=15"
        " ! rtph264pay name=pay0 pt=96 mtu=1200 audiotestsrc is-live=true ! alawenc ! rtppcmapay name=pay1 pt=8 )")

Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address(sys.argv[1])
server.set_service(sys.argv[2])
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(FILM)
if len(sys.argv) > 3:
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "watcher")
    auth = GstRtspServer.RTSPAuth()
    if sys.argv[3] == "digest":
        auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
        auth.add_digest("watcher", "hush", token)
    else:
        auth.add_basic(GstRtspServer.RTSPAuth.make_basic("watcher", "hush"), token)
    server.set_auth(auth)
    permissions = GstRtspServer.RTSPPermissions()
    permissions.add_role("watcher")
    for permission in ("media.factory.access", "media.factory.construct"):
        permissions.add_permission_for_role("watcher", permission, True)
    factory.set_permissions(permissions)
server.get_mount_points().add_factory("/film", factory)
server.attach(None)
print("ready", flush=True)
GLib.MainLoop().run()
