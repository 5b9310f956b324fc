"""Package sets that several tests share, so that a machine installs each set only once."""

NUMBERS = ("numpy==2.1.0", "pandas==2.2.3", "scikit-learn==1.5.2", "scipy==1.14.1")
TEXTS = ("jsonschema==4.23.0", "nltk==3.9.1", "pydantic==2.10.6", "rapidfuzz==3.13.0")
PLAIN = ("@noble/hashes@1.7.1", "ajv@8.17.1", "date-fns@4.1.0", "lodash@4.17.21", "nanoid@5.1.5", "zod@3.24.1")
BINARY = ("@dqbd/tiktoken@1.0.18", "@node-rs/crc32@1.10.6", "bufferutil@4.0.9", "hash-wasm@4.12.0")
UIPATH = ("pydantic==2.13.5", "uipath==2.7.0")
