"""Reads the servers that other MCP clients are configured with, as entries of a config of ours."""
