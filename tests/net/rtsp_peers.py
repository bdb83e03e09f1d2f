"""The peers that tests of RTSP need: GStreamer's server with a film, and whether the clients are there."""

import ctypes.util
import pathlib
import shutil
import subprocess

SERVER = pathlib.Path(__file__).with_name("rtsp_server.py")
PYTHON = "/usr/bin/python3"  # Debian's, which has gi
FILM = "rtsp://{}:8554/film"


def why_not():
    missing = [name for name in ("ffmpeg", "gst-launch-1.0") if not shutil.which(name)]
    if not ctypes.util.find_library("srtp2"):
        missing.append("libsrtp2")
    probe = "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import GstRtspServer"
    if not shutil.which(PYTHON) or subprocess.run([PYTHON, "-c", probe], check=False, capture_output=True).returncode != 0:
        missing.append("gir1.2-gst-rtsp-server-1.0")
    return f"needs {', '.join(missing)}" if missing else None
