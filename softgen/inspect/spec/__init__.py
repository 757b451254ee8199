"""The spec for people.

spec_names.py    search of names; spec_diff.py  differences between two generations
bit_diagram.py   dwords as rows of cells; spec_html.py spec_html_page.py spec_html_assets.py  the spec as HTML pages
behaviours.py    the numbered behaviours of the manuals and the tests that show them
citations.py     citations of behaviours in tests, and what each shows
"""
