# Bad texts are refused with their place and what is wrong there.
blockbuster convert -q unknown_value.bb
blockbuster convert -q wrong_type.bb
blockbuster convert -q shapes.bb
blockbuster convert -q law.bb
blockbuster convert -q stored.bb
blockbuster convert -q wide.bb
blockbuster convert -q told.bb
blockbuster convert -q truncated.bb
blockbuster convert -q no_such_file.bb
# And bad models with the file.
blockbuster convert -q empty.onnx
blockbuster convert -q no_model.onnx
