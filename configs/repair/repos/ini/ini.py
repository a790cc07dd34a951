class BadLine(ValueError):
    """A line that is neither a section nor a setting. The message has its number."""


def parse(text):
    """Settings by section; those before the first one are under ""."""
    section = ""
    settings = {section: {}}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
            settings.setdefault(section, {})
            continue
        parts = line.split("=")
        if len(parts) != 2:
            raise BadLine(f"line {number}: {line!r}")
        name, value = parts
        settings[section][name.strip()] = value.strip()
    return settings
