"""What a model can do: one file per tool, its description for the model beside it."""
