"""The MCP server, which is that of the command llmsandbox."""
