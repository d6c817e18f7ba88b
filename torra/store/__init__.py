"""The desk's SQLite file: connection, migrations, one file per noun, and the null store."""
