import sys

from wordcount.command import main

sys.exit(main())
