# attention_cudnn.cpp alone sees the headers of cudnn-frontend (tools/fetch_headers).
set(attention_cudnn attention_no_cudnn.cpp)
if(EXISTS ${BLOOMERY_HEADERS}/cudnn_frontend/include/cudnn_frontend.h)
  set(attention_cudnn attention_cudnn.cpp cudnn_library.cpp)
  set_source_files_properties(
    attention/attention_cudnn.cpp PROPERTIES COMPILE_OPTIONS
    "-isystem;${BLOOMERY_HEADERS}/cudnn_frontend/include")
endif()
# The kernels for sm_90a exist only where that architecture is built.
set(attention_sm90 flash_no_sm90.cpp)
if(CMAKE_CUDA_ARCHITECTURES MATCHES "90a")
  set(attention_sm90 flash_forward_sm90.cu flash_backward_sm90.cu tensor_map_sm90.cpp)
endif()
set(attention_cuda_tests)
if(WITH_CUDA)
  set(attention_cuda_tests attention_cuda_case_test.cpp attention_cuda_test.cpp)
endif()
add_op(
  attention
  SOURCES attention.cpp attention_call.cpp relative_bias.cpp tile_rounding.cpp
  CPU attention_forward_cpu.cpp attention_backward_cpu.cpp attention_merge_cpu.cpp relative_bias_cpu.cpp
  CUDA attention_cuda.cu
       attention_bias.cu
       attention_delta.cu
       attention_merge.cu
       attention_simple.cu
       flash_backward_bias_sm80.cu
       flash_backward_sm80.cu
       flash_forward_bias_sm80.cu
       flash_forward_sm80.cu
       relative_bias_cuda.cu
       ${attention_sm90}
       ${attention_cudnn}
  TESTS attention_test.cpp attention_cases_test.cpp attention_merge_test.cpp attention_places_test.cpp attention_tiles_test.cpp
        attention_window_test.cpp relative_bias_test.cpp
        ${attention_cuda_tests})
