"""Adapters from other libraries to calcore; one module per host, none imported unless asked for."""
