# nvcc: from SLUICE_NVCC, PATH, /usr/local/cuda, or the PyPI wheels that scripts/setup puts into .toolchain/cuda.
# sluice_cuda_library(NAME SOURCES...) compiles .cu files with it; CMake's own CUDA language is not used because its
# compiler probe does not understand the layout of the wheels.
if(SLUICE_CUDA)
  find_program(SLUICE_NVCC nvcc HINTS ${CMAKE_SOURCE_DIR}/.toolchain/cuda/nvidia/cu13/bin /usr/local/cuda/bin)
  if(NOT SLUICE_NVCC)
    message(FATAL_ERROR "nvcc not found. Run scripts/setup, put nvcc in PATH, or configure with -DSLUICE_CUDA=OFF "
                        "(the program then runs on the CPU only).")
  endif()
  get_filename_component(cuda_bin ${SLUICE_NVCC} REALPATH)
  get_filename_component(cuda_bin ${cuda_bin} DIRECTORY)
  get_filename_component(SLUICE_CUDA_ROOT ${cuda_bin} DIRECTORY)
  find_library(SLUICE_CUDART cudart_static HINTS ${SLUICE_CUDA_ROOT}/lib ${SLUICE_CUDA_ROOT}/lib64
               ${SLUICE_CUDA_ROOT}/targets/x86_64-linux/lib REQUIRED NO_DEFAULT_PATH)
  set(SLUICE_NVCC_FLAGS -std=c++20 -O3 -lineinfo --expt-relaxed-constexpr -diag-suppress 20012
      -Xcompiler=-Wall,-Wno-unused-parameter,-fPIC,-march=${SLUICE_ARCH}
      -gencode arch=compute_75,code=compute_75)
  foreach(arch ${SLUICE_CUDA_ARCHS})
    list(APPEND SLUICE_NVCC_FLAGS -gencode arch=compute_${arch},code=sm_${arch})
  endforeach()
endif()

function(sluice_cuda_library name)
  set(objects)
  foreach(source ${ARGN})
    file(RELATIVE_PATH relative ${CMAKE_CURRENT_SOURCE_DIR} ${source})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda/${relative}.o)
    get_filename_component(folder ${object} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${object}
      COMMAND ${SLUICE_NVCC} ${SLUICE_NVCC_FLAGS} -I${CMAKE_SOURCE_DIR}/src -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d VERBATIM COMMENT "nvcc ${relative}")
    list(APPEND objects ${object})
  endforeach()
  add_library(${name} STATIC ${objects})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PUBLIC ${SLUICE_CUDART} pthread dl rt)
endfunction()
