"""The database: the embedded server, engines, tables and their registry, migrations, the scoped transaction."""
