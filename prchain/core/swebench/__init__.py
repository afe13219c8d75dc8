"""Names that SWE-bench gives: to instances, and to parsers of test logs."""
