# The kernels for sm_90a exist only where that architecture is built.
set(moe_sm90 grouped_no_sm90.cpp)
if(CMAKE_CUDA_ARCHITECTURES MATCHES "90a")
  set(moe_sm90 grouped_product_sm90.cu)
endif()
add_op(
  moe
  SOURCES draws.cpp grouped_linear.cpp mix.cpp router.cpp routing.cpp rows.cpp
  CPU draws_cpu.cpp grouped_product_cpu.cpp mix_cpu.cpp routing_cpu.cpp rows_cpu.cpp
  CUDA draws_cuda.cu grouped_product_cuda.cu mix_cuda.cu routing_cuda.cu rows_cuda.cu sort_cuda.cu ${moe_sm90}
  TESTS mix_test.cpp routing_test.cpp rows_test.cpp)
