"""Binary decision diagrams: the package, the facts that restrict them, and how they are drawn."""
