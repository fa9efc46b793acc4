"""Write the generated parts of the reference: python docs/_site/generate.py"""

from __future__ import annotations

from generated import parts, with_parts

if __name__ == "__main__":
    for page, texts in parts().items():
        page.write_text(with_parts(page.read_text(encoding="utf-8"), texts), encoding="utf-8")
