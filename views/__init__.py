"""Pictures of problems and traces: for a terminal, as SVG, and as an HTML page that plays them."""
