"""The desk's SQLite file: connection, migrations, one module per noun, and the store in memory."""
