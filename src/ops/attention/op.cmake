add_op(
  attention
  SOURCES attention.cpp
  CPU attention_forward_cpu.cpp attention_backward_cpu.cpp
  TESTS attention_test.cpp attention_cases_test.cpp)
