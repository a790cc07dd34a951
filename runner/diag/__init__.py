"""Talk about text: TOML with positions, diagnostics, codes, suggestions, rendering."""
