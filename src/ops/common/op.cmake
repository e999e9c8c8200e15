add_op(common TESTS fast_math_test.cpp)
