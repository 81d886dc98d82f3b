"""Reports: one HTML file that needs no other file and no network.

`page` puts it together, `figures` makes the plots as data for Plotly's script, which is written
into the page. ``theme.js`` draws them in the colours of a light or a dark screen. A content
security policy in the page forbids every request.
"""
