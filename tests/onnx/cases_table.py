"""Tables of features: what ai.onnx.ml does to columns, and linear models of them."""

import numpy as np

from onnx.helper import make_node as N

from case import ML, K, graph_case, rand, single


def features():
    x, row = rand(5, 3), [1.0, 2.0, -3.0]
    table = [["N", 3]]
    for name, operand, attributes in [
            ("", x, {"offset": row, "scale": row}), ("-one", x, {"offset": [1.5], "scale": [2.0]}), ("-vector", x[0], {"offset": row, "scale": row}),
            ("-f64", x.astype(np.float64), {"offset": row, "scale": row}), ("-i64", np.arange(6).reshape(2, 3), {"offset": row, "scale": row}),
            ("-i32", np.arange(6, dtype=np.int32).reshape(2, 3), {"offset": [0.5], "scale": [2.0]})]:
        yield single("Scaler" + name, "Scaler", [operand], domain=ML, **attributes)
    yield single("Scaler-symbol", "Scaler", [x], domain=ML, symbols=table, offset=row, scale=row)
    yield single("Scaler-tied", "Scaler", [x], domain=ML, symbols=[["N", "C"]], offset=row, scale=row)
    yield single("Binarizer", "Binarizer", [np.float32([[1, -1, 0.5], [0.25, -np.inf, 9]])], domain=ML, threshold=0.25)
    holes = np.float32([[1, np.nan, 0], [0, 0, np.nan]])
    yield single("Imputer-nan", "Imputer", [holes], domain=ML, imputed_value_floats=row, replaced_value_float=float("nan"))
    yield single("Imputer-zero", "Imputer", [holes], domain=ML, imputed_value_floats=[7.0], replaced_value_float=0.0)
    yield single("Imputer-i64", "Imputer", [np.array([[1, 2, 3], [2, 2, 0]])], domain=ML, imputed_value_int64s=[7, 8, 9], replaced_value_int64=2)
    sizes = np.float32([[1, -2, 3], [0, 0, 0], [-1, -2, -4], [-3, 0, 0]])
    for norm in ("MAX", "L1", "L2"):
        yield single("Normalizer-" + norm, "Normalizer", [sizes], domain=ML, norm=norm)
        yield single(f"Normalizer-{norm}-symbol", "Normalizer", [x], domain=ML, symbols=table, norm=norm)
    yield single("Normalizer-vector", "Normalizer", [sizes[0]], domain=ML, norm="L2")
    yield single("Normalizer-i64", "Normalizer", [sizes.astype(np.int64)], domain=ML, norm="L1")
    yield single("ArrayFeatureExtractor", "ArrayFeatureExtractor", [x, K(np.array([2, 0]))], domain=ML)
    yield single("ArrayFeatureExtractor-one", "ArrayFeatureExtractor", [x, K(np.array([1]))], domain=ML, symbols=table)
    yield single("ArrayFeatureExtractor-3d", "ArrayFeatureExtractor", [rand(2, 4, 3), K(np.array([[2, 0]]))], domain=ML)
    yield single("ArrayFeatureExtractor-vector", "ArrayFeatureExtractor", [K(np.array([7, 9, 4])), np.array([[2], [0]])], domain=ML, symbols=[None, ["N", 1]])
    yield single("OneHotEncoder", "OneHotEncoder", [np.array([[3, 5], [4, 0]])], domain=ML, cats_int64s=[3, 4, 5])


def linear():
    x, weights, biases = rand(5, 3), [0.1, 0.2, -0.1, 0.3, 0.1, 0.2], [0.1, -0.2]
    table = [["N", 3]]
    for name, operand, attributes in [
            ("", x, {"coefficients": weights, "intercepts": biases, "targets": 2}), ("-one", x, {"coefficients": weights[:3], "intercepts": [0.5]}),
            ("-no-intercepts", x, {"coefficients": weights, "targets": 2}), ("-vector", x[0], {"coefficients": weights[:3]}),
            ("-logistic", x, {"coefficients": weights, "intercepts": biases, "targets": 2, "post_transform": "LOGISTIC"}),
            ("-softmax", x, {"coefficients": weights, "intercepts": biases, "targets": 2, "post_transform": "SOFTMAX"})]:
        yield single("LinearRegressor" + name, "LinearRegressor", [operand], domain=ML, **attributes)
    yield single("LinearRegressor-symbol", "LinearRegressor", [x], domain=ML, symbols=table, coefficients=weights, intercepts=biases, targets=2)
    for how in ("NONE", "LOGISTIC", "SOFTMAX"):
        for name, labels in (("even", [4, 6]), ("odd", [7, 2])):
            yield single(f"LinearClassifier-{how}-{name}", "LinearClassifier", [x], domain=ML, outputs=2, symbols=table, coefficients=weights,
                         intercepts=biases, classlabels_ints=labels, post_transform=how)
        if how != "SOFTMAX":
            yield single(f"LinearClassifier-{how}-one", "LinearClassifier", [x], domain=ML, outputs=2, symbols=table, coefficients=weights[:3],
                         intercepts=[0.1], classlabels_ints=[5, 7], post_transform=how)
    three = {"coefficients": [*weights, 0.5, -0.5, 0.0], "intercepts": [*biases, 0.0]}
    for name, labels in (("even", [0, 1, 2]), ("odd", [3, 1, 7])):
        yield single("LinearClassifier-three-" + name, "LinearClassifier", [x], domain=ML, outputs=2, classlabels_ints=labels, post_transform="SOFTMAX", **three)
        node = N("LinearClassifier", ["x"], ["y", "unused"], domain=ML, classlabels_ints=labels, **three)
        yield graph_case("LinearClassifier-labels-" + name, [node], {"x": x}, ["y"], {}, 17, by="runtime")
    # as scikit-learn's pipelines are exported
    steps = [N("Imputer", ["x"], ["i"], domain=ML, imputed_value_floats=[0.5], replaced_value_float=float("nan")),
             N("Scaler", ["i"], ["s"], domain=ML, offset=[0.1, 0.2, 0.3], scale=[2.0, 0.5, 1.0]),
             N("LinearClassifier", ["s"], ["label", "scores"], domain=ML, classlabels_ints=[0, 1, 2], post_transform="LOGISTIC", **three),
             N("Normalizer", ["scores"], ["shares"], domain=ML, norm="L1")]
    holes = x.copy()
    holes[1, 2] = np.nan
    yield graph_case("Pipeline", steps, {"x": holes}, ["label", "shares"], {}, 17, symbols={"x": ["N", 3]}, by="runtime")


def cases():
    yield from features()
    yield from linear()
