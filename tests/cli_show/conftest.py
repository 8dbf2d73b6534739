"""The runs that the report's tests make."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "report_page"))
