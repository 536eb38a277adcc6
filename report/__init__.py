"""One self-contained page about a run: results, interventions, diagnostics, and its outputs step by step."""
