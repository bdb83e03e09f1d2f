# The headers of elements from outside the tree, in ${SLUICE_ELEMENT}/include, and the number of their contract
# (ElementHeaders.cmake). packaging/ installs them.
set(SLUICE_ELEMENT ${CMAKE_BINARY_DIR}/element)
set(contract ${SLUICE_ELEMENT}/generated/engine/contract.h)
file(GLOB headers CONFIGURE_DEPENDS src/base/*.h src/packet/*.h src/device/*.h src/port/*.h src/engine/*.h src/function/*.h)
list(FILTER headers EXCLUDE REGEX "_test\\.h$")
add_custom_command(OUTPUT ${SLUICE_ELEMENT}/stamp BYPRODUCTS ${contract}
  COMMAND ${CMAKE_COMMAND} -D SOURCE=${CMAKE_SOURCE_DIR}/src -D OUT=${SLUICE_ELEMENT} -D CONTRACT=${contract}
          -D VERSION=${PROJECT_VERSION} -P ${CMAKE_SOURCE_DIR}/cmake/ElementHeaders.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${SLUICE_ELEMENT}/stamp
  DEPENDS ${headers} ${CMAKE_SOURCE_DIR}/cmake/ElementHeaders.cmake VERBATIM COMMENT "headers of elements")
add_custom_target(sluice_contract DEPENDS ${SLUICE_ELEMENT}/stamp)
