"""What a host says of what it stores: frozen types that hosts, clients and commands share. No I/O, no policy."""
