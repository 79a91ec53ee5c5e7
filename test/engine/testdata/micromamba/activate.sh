echo "this script prints something"
CONDA_SHLVL_BEFORE=nothing
export TOOLS_HOME="$CONDA_PREFIX/share/two words" TOOLS_LINES='one
two=2'
