"""The provider without a model: arithmetic that reads each role's evidence."""
