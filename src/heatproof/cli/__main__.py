from heatproof.cli import main

main()
